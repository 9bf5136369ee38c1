"""The page to play: world and rules in JavaScript, built into one HTML file, and the server behind it."""
