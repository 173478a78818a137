package peer

import "sync"

// writers has the batchWriter of each person's folder.
var writers sync.Map

type contactEdit = func([]Contact) ([]Contact, error)

// batchWriter writes the contacts once for all changes that come while it writes: each write waits for the card, and
// an owner calls many sites at the same time.
type batchWriter struct {
	mu      sync.Mutex
	waiting *batch // nil where nobody waits
	writing chan struct{}
}

func newBatchWriter() *batchWriter { return &batchWriter{writing: make(chan struct{}, 1)} }

// batch is a number of changes that one write makes.
type batch struct {
	edits []contactEdit
	done  chan struct{} // closed after the write
	err   error
}

// write makes a change, perhaps with others in one call of change, and waits for it.
func (w *batchWriter) write(edit contactEdit, change func(contactEdit) error) error {
	w.mu.Lock()
	b := w.waiting
	if b != nil {
		b.edits = append(b.edits, edit)
		w.mu.Unlock()
		<-b.done
		return b.err
	}
	b = &batch{edits: []contactEdit{edit}, done: make(chan struct{})}
	w.waiting = b
	w.mu.Unlock()

	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	w.mu.Lock()
	w.waiting = nil // later ones make the next batch
	w.mu.Unlock()
	b.err = change(b.all)
	close(b.done)
	return b.err
}

// all makes all changes of the batch. It returns nil where none changes anything.
func (b *batch) all(contacts []Contact) (changed []Contact, err error) {
	for _, edit := range b.edits {
		now, err := edit(contacts)
		if err != nil {
			return nil, err
		}
		if now != nil {
			contacts, changed = now, now
		}
	}
	return changed, nil
}
