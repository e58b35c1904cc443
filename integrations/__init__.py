"""Plugins for inference engines, one module per engine.

No module here imports its engine before it is used, so that ``constrain.integrations`` costs
nothing and needs nothing installed.
"""
