package main

import (
	"context"
	"slices"
	"strings"

	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// listPoints asks for the points that the caller may see.
func (s *session) listPoints(ctx context.Context) ([]point, error) {
	res, err := s.call(ctx, "list_points", nil)
	if err != nil {
		return nil, err
	}
	var list pointsResult
	err = json.Unmarshal(res.JSON, &list)
	return list.Points, err
}

// pick returns the names of the points that the words stand for: DEVICE or DEVICE/* are those
// of a device that fit. Another word stands for itself, unless it is a point that does not
// fit: the site says what is wrong with a point that the caller may not see.
func pick(points []point, words []string, fit func(point) bool) ([]string, error) {
	var picked, names []string
	for _, p := range points {
		names = append(names, p.Point)
	}
	for _, word := range words {
		of, all := strings.CutSuffix(word, "/*")
		if strings.Contains(of, "/") {
			if i := slices.Index(names, word); i >= 0 && !fit(points[i]) {
				return nil, usagef("%s", points[i].unfit())
			}
			picked = append(picked, word)
			continue
		}
		before := len(picked)
		for _, p := range points {
			if strings.HasPrefix(p.Point, of+"/") && fit(p) && !slices.Contains(picked, p.Point) {
				picked = append(picked, p.Point)
			}
		}
		switch {
		case len(picked) > before:
		case slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, of+"/") }):
			return nil, usagef("%s has no points for this, or they are named twice; agentsite points shows what it has", of)
		case all:
			return nil, usagef("there is no device %q here; agentsite points lists what there is", of)
		default:
			return nil, usagef("there is no device or point %q here%s", of, device.Suggest(of, names, "point"))
		}
	}
	return picked, nil
}

// unfit says what a point is that was asked for something that it does not have.
func (p point) unfit() string {
	switch p.Kind {
	case "text":
		return p.Point + " is a display and has no readings: write to it with agentsite call show_text"
	case "image":
		return p.Point + " is a camera and has no readings: take a picture with agentsite call capture_image"
	}
	article := " is a "
	if p.Kind == "event" {
		article = " is an "
	}
	return p.Point + article + string(p.Kind) + ", not a measurement: a site remembers how measurements went, and of others the latest reading (agentsite read)"
}
