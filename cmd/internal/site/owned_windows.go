package site

import "io/fs"

// owned leaves it to the system, which knows no file modes.
func owned(fs.FileInfo) (user uint32, ours bool) { return 0, true }
