"""Speech to text, and text to speech: audio files, the loop around Whisper, voices of VITS."""
