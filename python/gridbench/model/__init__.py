"""What a run takes, worked out from a few parameters: tasks on their way from stage to stage."""
