"""What an answer is worth: checks of skills, and functions of the user's own in a process of their own."""
