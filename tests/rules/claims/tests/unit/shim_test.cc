TEST_F(Shim, There) {}
