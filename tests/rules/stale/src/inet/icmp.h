constexpr int kThere = 1;
