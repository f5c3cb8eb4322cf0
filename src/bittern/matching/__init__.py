"""Subscription indexes: which subscriptions does this event satisfy?"""
