"""On-policy distillation from several teachers: losses, teachers (local or behind an endpoint), and the trainer."""
