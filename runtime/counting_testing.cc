// The shared object of shared_object_test.

extern "C" int count() {
  static int calls = 0;
  return ++calls;
}
