"""Speech to text: audio files, and the loop around Whisper."""
