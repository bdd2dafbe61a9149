"""What learned proxies are worth: agents trained on them and tested on the real task, as rows of
a results CSV.
"""
