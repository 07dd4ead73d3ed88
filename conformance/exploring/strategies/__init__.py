"""What explorations draw: a module for each, whose `bodies` are requests that their document allows."""
