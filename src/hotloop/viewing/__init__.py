"""Looking at what an agent does: in the terminal, as a video, as pictures.

Files:
    draw_network.py     A network wired by a graph, as one SVG file: levels from left to right, weights and biases
                        as colors
    frames.py           Episodes as pictures: in memory for a page, or one PNG file each
    gymnasium_scene.py  A Gymnasium env that renders itself
    play.py             An agent's episodes, step by step, for whoever looks on
    scenes.py           What is drawn of each env: from its state, by its own `render`, or not at all
    screen.py           A terminal taken over for a while and given back as it was, whatever happens
    terminal.py         Episodes played in a terminal, at a speed that keys change
    video.py            MP4 and GIF: frames are piped to the ffmpeg that comes with imageio-ffmpeg (extra `video`)
    watch.py            `watch` and `show`: a run's best agent plays, into files or numbers, or on the terminal
"""
