"""What people and machines read about a run, computed from its bundle and nothing else."""
