#include <unistd.h>
#include <bzlib.h>
