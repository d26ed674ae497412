"""What stands between a claim and long-term memory."""
