// Package card transfers a site's card, its record and its capabilities, from the site itself
// to other members of its realm.
package card
