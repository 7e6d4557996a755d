"""Train's attendant: looks at reports and instances whenever something may have changed, and says what it means."""
