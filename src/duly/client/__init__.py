"""What a program does with jobs from outside a worker: declare, enqueue, wait, inspect, operate."""
