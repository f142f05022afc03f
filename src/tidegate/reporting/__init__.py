"""What every report of ours is made of: text safe to look at, markup, pages, numbers, JSON, files.

Knows neither what is judged nor who judges, and imports nothing else of ours: the one package that the judge and the
load may share with each other and with the command line.
"""
