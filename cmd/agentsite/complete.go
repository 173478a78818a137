package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout bounds a completion that asks a site.
const completeTimeout = time.Second

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completePoints offers the names of the running site's points for the first most
// words, any number of them for -1. Without a site there are none.
func (a *app) completePoints(most int, wanted func(point) bool) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if most < 0 || len(args) < most {
			for _, p := range a.pointsFor(cmd.Context()) {
				if wanted(p) {
					names = append(names, cobra.CompletionWithDesc(clean(p.Point), clean(p.Description)))
				}
			}
		}
		return fromSite(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// fromSite returns those of a site's completions whose word no shell interprets, with a clean
// description.
func fromSite(names []string) (safe []string) {
	for _, n := range names {
		if w, description, _ := strings.Cut(n, "\t"); safeWord(w, "") != "" {
			safe = append(safe, cobra.CompletionWithDesc(w, clean(description)))
		}
	}
	return safe
}

func (a *app) completeSet(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completePoints(1, point.output)(cmd, args, prefix)
	}
	values := []string{toSafe}
	for _, p := range a.pointsFor(cmd.Context()) {
		if p.Point == args[0] && p.Kind == "switch" {
			values = []string{"on", "off", toSafe}
		}
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeTools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		list, err := s.tools(ctx)
		for _, t := range list {
			names = append(names, cobra.CompletionWithDesc(clean(t.Name), clean(firstSentence(t.Description))))
		}
		return names, err
	})
}

// completeWith completes the first argument from the result of list; nothing if that fails.
func (a *app) completeWith(cmd *cobra.Command, args []string, list func(context.Context, *session) ([]string, error)) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		a.with(func(s *session) (err error) {
			names, err = list(ctx, s)
			return err
		})
	}
	return fromSite(names), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) pointsFor(ctx context.Context) []point {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	var list []point
	a.with(func(s *session) error {
		var err error
		list, err = s.listPoints(ctx)
		return err
	})
	return list
}
