"""Networks and operations to time: their layers, folders and operations' counts."""
