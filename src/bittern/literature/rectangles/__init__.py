"""Subscriptions as rectangles: REIN, HEM and TAMA, which ``bits`` is compared with.

A conjunction of one range for each attribute is a rectangle, and an event is a point::

    boxes.py   classes as boxes, and verifying what is left
    rein.py    REIN: ends of ranges in buckets, each event marks what does not match
    hem.py     HEM: the same, with bitmaps of what whole groups of buckets would mark
    tama.py    TAMA: ranges in cells that are halved again and again, satisfied ones are counted

Sources: Qian, Cao, Zhu and Li, "REIN: A fast event matching approach for content-based
publish/subscribe systems" (INFOCOM 2014); "HEM: A Hardware-Aware Event Matching Algorithm for
Content-Based Pub/Sub Systems" (DASFAA 2022); Zhao and Wu, "Towards Approximate Event Processing in
a Large-Scale Content-Based Network" (ICDCS 2011), which is TAMA. The papers themselves were not at
hand. What is built is what their abstracts and the published notes of HEM's authors say (1,000
buckets, 16 groups, 13 levels, the defaults here); what they leave open was chosen, and each module
says what. For all three:

- Attributes hold cells of the rank space (``model/rank/space.py``) instead of values, so that
  buckets and levels divide the constants of subscriptions, not the domain.
- An expression is its disjunctive normal form, and a clause a box. A set of values is the range
  around it, and what a box does not say (a hole, "missing") is told by the class's program, which
  every class that is left has to pass. For plain ranges, REIN and HEM leave only what matches.
- They are built at once. The papers insert and delete, which is not measured here.
"""
