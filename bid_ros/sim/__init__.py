"""The Franka twin: the placing scene, its renderer, its libfranka server and the score."""
