"""A report as JSON, HTML, Markdown, SVG and text for a terminal, all from one document."""
