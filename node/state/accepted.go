package state

import "fmt"

// MaxAccepted bounds AcceptedFile, in bytes.
const MaxAccepted = 4 << 20

// Accepted returns the data of the last WriteAccepted; nil for none.
func (f Folder) Accepted() ([]byte, error) {
	text, err := f.ReadAtMost(AcceptedFile, MaxAccepted)
	if err != nil {
		return nil, f.Unusable(err)
	}
	return text, nil
}

// WriteAccepted replaces the accepted tools, durably. More than Accepted reads is refused.
func (f Folder) WriteAccepted(text []byte) error {
	if len(text) > MaxAccepted {
		return fmt.Errorf("the accepted tools of all children, also of earlier ones, take %d MiB at most", MaxAccepted>>20)
	}
	return WriteAtomic(f.Path(AcceptedFile), text, 0o600)
}
