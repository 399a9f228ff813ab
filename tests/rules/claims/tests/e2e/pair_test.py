class Pair:
    def test_there(self):
        pass
