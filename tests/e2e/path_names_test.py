"""The concentrator shows the paths of an edge by the names of the edge's uplinks."""

import unittest

from pair_case import PairCase


class PathNames(PairCase):
    def setUp(self):
        self.edge, self.hub = self.lab.edge_gateway, self.lab.gateway
        self.edge.config = {**self.edge.config, "tunnel": {}}
        self.rename("wifi", "lte")
        self.edge.restart()
        self.edge.wait_up(subflows=2)
        self.shows("wifi", "lte")

    def rename(self, *names):
        for uplink, name in zip(self.edge.config["uplinks"], names):
            uplink["name"] = name

    def active(self):
        return {flow["path"] for flow in self.hub.paths() if flow["state"] == "active"}

    def shows(self, *names):
        self.eventually(lambda: self.active() == set(names), f"the concentrator shows {names}", timeout=20)

    def test_tables_and_events_have_them(self):
        for verb in ("status", "paths", "recovery", "top"):
            text = self.hub.ctl(verb)
            for name in ("wifi", "lte"):
                self.assertRegex(text, rf"(?m)^edge0? .*\b{name} ", verb)
        self.assertEqual({flow["uplink"] for flow in self.hub.paths()}, {""}, "they are no uplinks of its own")
        for name in ("wifi", "lte"):
            self.lab.wait_for_line("concentrator", f"peer edge: {name} (")

    def test_each_side_is_told_the_address_that_the_other_sees(self):
        def figures(gateway, name):
            return {flow[name] for flow in gateway.paths() if flow["state"] == "active"}

        for near, far in ((self.edge, self.hub), (self.hub, self.edge)):
            self.eventually(lambda: figures(near, "public_address") == figures(far, "remote"), "it is told")

    def test_a_renamed_uplink_is_told_again(self):
        self.rename("wifi", "mobile")
        self.edge.reload()
        self.shows("wifi", "mobile")
        self.assertIn(" mobile ", self.hub.ctl("status"))

    def test_a_restarted_concentrator_learns_them_anew(self):
        self.hub.restart()
        self.edge.wait_up(subflows=2)
        self.shows("wifi", "lte")

    def test_an_edge_may_keep_them_to_itself(self):
        self.edge.config["tunnel"]["tell-names"] = "off"
        self.edge.restart()
        self.edge.wait_up(subflows=2)
        self.hub.wait_up(subflows=2)
        remotes = {flow["remote"] for flow in self.hub.paths() if flow["state"] == "active"}
        self.assertEqual(self.active(), remotes)
        self.assertEqual({flow["path"] for flow in self.edge.paths()}, {"wifi", "lte"})


if __name__ == "__main__":
    unittest.main()
