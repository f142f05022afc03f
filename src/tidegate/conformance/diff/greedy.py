"""Greedy text that differs: near ties of the model's arithmetic, or a model that is asked something else?

Other kernels, batches or machines move log-probabilities a little, and a text parts from its twin where two tokens were
nearly as likely. That happens in few answers. A lost system prompt, another template or another model changes most.
Where the log-probabilities of the old answer are known, they decide; else the share of answers that differ does.
"""

from collections.abc import Iterable
from dataclasses import replace

from tidegate.conformance.diff.difference import Aspect, Difference, Meaning

MAX_SHARE = 0.25
MIN_ANSWERS = 4


def judge_texts(differences: Iterable[Difference], num_greedy: int) -> list[Difference]:
    """Returns the differences with a meaning for those of greedy text and calls. `num_greedy`: how many answers were
    compared.
    """
    found = list(differences)
    decided = {(d.case_id, d.ask): d for d in found if d.aspect is Aspect.LOGPROBS and d.where.endswith("parts")}
    greedy = [d for d in found if d.because == "greedy"]
    num_differing = len({(d.case_id, d.ask) for d in greedy})
    is_many = num_differing >= MIN_ANSWERS and num_differing > MAX_SHARE * num_greedy
    share = f"{num_differing} of {num_greedy} greedy answers differ"
    judged = []
    for difference in found:
        if difference.because == "sampled":
            difference = replace(difference, because="sampled text is not promised to be the same")
        elif difference.because == "greedy":
            known = decided.get((difference.case_id, difference.ask))
            if known is not None:
                difference = replace(difference, meaning=known.meaning, because=known.because)
            elif is_many:
                because = f"{share}: more than near ties explain"
                difference = replace(difference, meaning=Meaning.REGRESSION, because=because)
            else:
                difference = replace(difference, because=f"{share}: as near ties do")
        judged.append(difference)
    return judged
