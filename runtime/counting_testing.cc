// The shared object that shared_object_test loads.

extern "C" int count() {
  static int calls = 0;
  return ++calls;
}
