#include <unistd.h>
#include <zlib.h>
