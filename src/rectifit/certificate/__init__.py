"""Lower bounds of the true objective, the searches that raise them, and the driver that makes a proof."""
