"""One recipe from text to finished models: teacher, distilled corpus, students, export, evaluation.

A chain is a list of stages, each of them a command of this tool with an output of its own. What is
done is skipped, what was interrupted goes on, and what was made from something else is never mixed
in.
"""
