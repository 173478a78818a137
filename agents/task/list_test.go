package task

import (
	"fmt"
	"testing"
)

// TestCut: no task is left out of a list that has not ended, and it is said how many are left out.
func TestCut(t *testing.T) {
	all := []Task{{ID: "live", State: InputRequired, Created: "2026"}}
	for i := range 80 {
		all = append(all, Task{ID: fmt.Sprint(i), State: Completed, Created: fmt.Sprint(3000 + i)})
	}
	Sort(all)
	if first, more := Cut(all, 50); len(first) != 50 || more != 31 || first[0].ID != "live" || first[1].ID != "79" {
		t.Errorf("%d tasks, %d more: %+v", len(first), more, first[:2])
	}
	for i := range all {
		all[i].State = Working
	}
	if first, more := Cut(all, 50); len(first) != MaxLive || more != 81-MaxLive {
		t.Errorf("%d tasks, %d more", len(first), more)
	}
	if first, more := Cut(nil, 50); len(first) != 0 || more != 0 {
		t.Error("there are none")
	}
}
