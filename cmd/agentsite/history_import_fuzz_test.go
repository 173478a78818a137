package main

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/node/acts"
)

// FuzzImport: whatever a file has, what is sent of it is within the point's range, in order, in the past
// and such that a site takes it; the second reading, which sends, finds what the first did.
func FuzzImport(f *testing.F) {
	for _, text := range []string{
		"time,point,value,min,max,last\n2026-01-31T18:00:00Z,a/b,1,0,2,1\n2026-01-31 18:00:30,a/b,1\n",
		"time;value\n31.01.2026 18:00;20,5\n2026-10-25 02:10:00;-9999\n",
		"\xef\xbb\xbftime\tvalue\n1700000000\t1\n1700000060.5\t1e400\n",
		"#group,false\n,result,table,_time,_value\n,,0,2026-01-31T18:00:00.123456789Z,NaN\n\n,result,table,_value,_time\n,,1,5,2026-01-31T18:01:00Z\n",
		"entity_id,state,last_changed\na/b,\"1,234\",2026-01-31T18:00:00.000+01:00\n",
		"date,time,value\n2026-01-31,18:00:00,1\n2026-01-31,19:00,unavailable\n",
		"time,value\n1700000000123,1\n1700000000124000,1\n",
		"time,value\n" + strings.Repeat("1", 3000) + ",1\n", "time,value\n" + strings.Repeat("é", 3000) + ",1\n", "time,value\n2026-01-31,1." + strings.Repeat("1.", 3000) + "\n",
	} {
		f.Add(text, true)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, bare bool) {
		im := importer{file: "x.csv", as: make(map[string]string), zone: berlin, points: map[string]*importedPoint{
			"a/b": {Point: "a/b", unit: "%", min: 0, max: 100}, "free/one": {Point: "free/one", min: math.Inf(-1), max: math.Inf(1)},
		}}
		if bare {
			im.as[""] = "a/b"
		}
		if err := im.read(strings.NewReader(text)); err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		rows, left := im.rows, im.leftOut()
		if len(left) > 10000 {
			t.Errorf("%d bytes say what is left out", len(left))
		}
		last, sent := make(map[string]time.Time), 0
		im.send = func(p *importedPoint, readings []acts.PastReading) error {
			for _, x := range readings {
				sent += int(x.Count)
				if err := x.Summary().Check(); err != nil || x.Min < p.min || x.Max > p.max || x.Count < 1 {
					t.Errorf("%s: %+v, %v", p.Point, x, err)
				}
				if x.Time.Before(last[p.Point]) || x.Time.After(time.Now()) {
					t.Errorf("%s: %v after %v", p.Point, x.Time, last[p.Point])
				}
				last[p.Point] = x.Time
			}
			return nil
		}
		if err := im.read(strings.NewReader(text)); err != nil || im.rows != rows || sent != rows || !reflect.DeepEqual(im.leftOut(), left) {
			t.Errorf("the second time: %d rows of %d, %d sent, %v", im.rows, rows, sent, err)
		}
	})
}
