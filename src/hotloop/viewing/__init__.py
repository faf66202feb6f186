"""Looking at what an agent does: in the terminal, as a video, as pictures.

Files:
    deploy.py           `deploy`: a trained durotaxis agent on substrates of choice, and a file of what every node was
                        and did
    draw.py             `draw`: a network that is wired by a graph as a picture or an animation, and the measures of
                        its graph
    draw_history.py     A network's weights over training, from the checkpoints that a run kept
    draw_network.py     A network wired by a graph, as one SVG file: levels from left to right, weights and biases
                        as colours
    draw_picture.py     The same network as pixels: one picture, or the frames of an animation over training
    frames.py           Episodes as pictures: in memory for a page, or one PNG file each
    gymnasium_scene.py  A Gymnasium env that renders itself
    html.py             An episode as a page: `hotloop watch RUN --html FILE`, for envs whose moments can be told as
                        data
    play.py             An agent's episodes, step by step, for whoever looks on
    scenes.py           What is drawn of each env: scenes, drawers, and the durotaxis scene with its past
    screen.py           A terminal taken over for a while and given back as it was, whatever happens
    terminal.py         Episodes played in a terminal, at a speed that keys change
    video.py            MP4 and GIF: frames are piped to the ffmpeg that comes with imageio-ffmpeg (extra `video`)
    watch.py            `watch` and `show`: a run's best agent plays, into files or numbers, or on the terminal
"""
