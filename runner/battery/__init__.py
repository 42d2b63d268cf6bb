"""The battery: many small trainings with a known truth, on which the early warning is measured. See REPORT_CARD.md."""
