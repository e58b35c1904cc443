"""Tools and tool calls: definitions, formats as data, rendering, parsing, inference.

``definitions`` and ``sources``     tools from what people have
``formats`` and ``named_formats``   how model families write calls, as data
``inference``                       the same, read from a chat template
``parser``, ``events``, ``render``  from text to calls and back
``partial``                         JSON that is still being written
``language``                        the messages of a format as a tree, for the constraint

Nothing here imports transformers, jinja2 or pydantic before it is needed.
"""
