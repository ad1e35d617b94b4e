"""Searches that run the model: layers that cost accuracy, precisions of layers, the fastest schedules."""
