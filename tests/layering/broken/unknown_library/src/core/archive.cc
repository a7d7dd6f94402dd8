#include <unistd.h>
#include <zstd.h>
