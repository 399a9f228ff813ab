// The targets that own a precompiled header have no other source.
int main() {}
