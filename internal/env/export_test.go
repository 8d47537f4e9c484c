package env

// Guard checks addresses without connecting to them.
var Guard = guard
