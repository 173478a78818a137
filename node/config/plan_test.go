package config

import (
	"slices"
	"testing"
)

// planned holds the plan of devices to be the devices, and itself.
func planned(t *testing.T, site *Site) {
	plan := Plan(site, site.Devices)
	again, err := Parse("plan", plan, fakes())
	if err != nil {
		t.Fatalf("%s%v", plan, err)
	}
	if again.Name != site.Name || again.Watchdog != site.Watchdog || !slices.EqualFunc(site.Devices, again.Devices, Device.Same) {
		t.Errorf("%s", plan)
	}
	if twice := Plan(again, again.Devices); string(twice) != string(plan) {
		t.Errorf("%s\nmade\n%s", plan, twice)
	}
}

func TestPlan(t *testing.T) {
	for _, text := range []string{
		greenhouse,
		"site: { name: a }",
		"site: { name: a, watchdog: \"/dev/watch dog\" }",
		"site: { name: a }\ndevices:\n  h: { driver: multi, labels: { on: \"it's\\t\\\"on\\\"\", ü: \"°C # no comment: - x\", \"-\": \"\", n: '0' }, steps: [{ after: 0, gain: -2 }, { after: 1m, gain: 1e3 }] }\n",
		"site: { name: a }\ndevices:\n  h:\n    driver: multi\n    labels:\n      text: |\n        two\n        lines\n    steps: []\n    points: {}\n",
	} {
		site, err := Parse("a.yaml", []byte(text), fakes())
		if err != nil {
			t.Fatal(err)
		}
		planned(t, site)
	}
	site, err := Parse("a.yaml", []byte(greenhouse), fakes())
	if err != nil {
		t.Fatal(err)
	}
	const want = `site:
  name: greenhouse
devices:
  pump:
`
	if got := Plan(site, site.Devices[1:2]); string(got[:len(want)]) != want {
		t.Errorf("%s", got)
	}
}
