@target("shield.1", "a thing", "s")
def thing():
    return 1
