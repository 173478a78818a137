package state

// MaxAccepted bounds AcceptedFile, in bytes.
const MaxAccepted = 4 << 20

// Accepted returns what WriteAccepted wrote; nil for nothing.
func (f Folder) Accepted() ([]byte, error) {
	text, err := ReadUntrusted(f.Path(AcceptedFile), MaxAccepted)
	if err != nil {
		return nil, f.Unusable(err)
	}
	return text, nil
}

// WriteAccepted replaces the accepted tools, durably.
func (f Folder) WriteAccepted(text []byte) error {
	return WriteAtomic(f.Path(AcceptedFile), text, 0o600)
}
