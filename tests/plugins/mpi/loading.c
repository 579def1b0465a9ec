/* A program without MPI that loads the extension named in its argument, and it alone sees what that needs. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int (*sumOfOnes)(void);
  void* found;
  void* const extension = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (extension == NULL) {
    fprintf(stderr, "cannot open the extension: %s\n", argc > 1 ? dlerror() : "no argument");
    return 2;
  }
  found = dlsym(extension, "sumOfOnes");
  if (found == NULL) return 3;
  memcpy(&sumOfOnes, &found, sizeof found);
  return sumOfOnes();
}
