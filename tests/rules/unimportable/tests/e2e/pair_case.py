"""What old_test.py wants has left."""
