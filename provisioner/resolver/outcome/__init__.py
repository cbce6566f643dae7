"""What was chosen -> the stack that people and locks see, with everything it rests on."""
