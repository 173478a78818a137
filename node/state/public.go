package state

// Public returns the data of the last WritePublic; nil for none.
func (f Folder) Public() ([]byte, error) { return f.ReadAtMost(PublicFile, maxPublic) }

// maxPublic bounds the file.
const maxPublic = 1 << 20

// WritePublic replaces the public name's certificate, durably.
func (f Folder) WritePublic(text []byte) error { return WriteAtomic(f.Path(PublicFile), text, 0o600) }
