"""The `constrain` command.

``main.py`` has the parser and turns every failure into a sentence and an exit code; each command is
a module of its own (``generate``, ``extract``, ``check``); what they share is in the modules whose
names begin with an underscore.  Nothing here imports torch, transformers or pydantic when it is
imported: ``constrain --help`` answers at once, and a mistake in the input is reported before a
model is loaded.
"""
