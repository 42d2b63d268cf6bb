"""What every recipe shares: device, batch plan, trainer and its callbacks."""
