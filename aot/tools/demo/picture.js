// A picture that is dropped, pasted or chosen, or those of the camera; `show` tells what the network finds in it.
const SHOWN = 640; // pixels of the longer side of what is shown, at most
find("main").innerHTML = `
  <label class="picture">Drop, paste or choose a picture<br><input type="file" accept="image/*"><canvas></canvas></label>
  <button type="button">Camera</button>
  <ol></ol>`;
const [paper, area, camera] = ["canvas", "label", "button"].map(find);
let live; // the camera's stream

/** Return a picture at a size, as bytes of red, green, blue and alpha. */
function pixels(canvas, picture, width, height) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(picture, 0, 0, width, height);
  return pen.getImageData(0, 0, width, height).data;
}

/** Return the input: values of 0 to 255, of which grey is the luminance of ITU-R 601-2. */
function tensor(picture) {
  const { channels, channels_first: first, type } = facts;
  const [width, height] = [facts.width || picture.width, facts.height || picture.height];
  const rgba = pixels(document.createElement("canvas"), picture, width, height);
  const count = width * height;
  const data = new { u8: Uint8Array, f32: Float32Array, f64: Float64Array }[type](count * channels);
  const [pixel, channel] = first ? [1, count] : [channels, 1];
  for (let k = 0; k < count; k++) {
    const at = 4 * k;
    if (channels === 1) data[k] = Math.round(0.299 * rgba[at] + 0.587 * rgba[at + 1] + 0.114 * rgba[at + 2]);
    else for (let c = 0; c < channels; c++) data[k * pixel + c * channel] = rgba[at + c];
  }
  return { data, shape: first ? [1, channels, height, width] : [1, height, width, channels] };
}

async function read(picture) {
  const scale = Math.min(1, SHOWN / Math.max(picture.width, picture.height));
  const draw = () => pixels(paper, picture, Math.ceil(picture.width * scale), Math.ceil(picture.height * scale));
  if (!live) draw();
  const given = tensor(picture);
  const begin = performance.now();
  const results = await net.run({ [facts.input]: given });
  const spent = performance.now() - begin;
  draw();
  const [height, width] = given.shape.slice(facts.channels_first ? 2 : 1);
  show(results[facts.output], width, height);
  tell(`${spent.toFixed(1)} ms`);
}

function stop() {
  live?.getTracks().forEach((track) => track.stop());
  live = undefined;
  camera.textContent = "Camera";
}

function take([file]) {
  if (!file) return;
  stop();
  told(async () => read(await createImageBitmap(file)));
}

async function film() {
  const stream = await navigator.mediaDevices.getUserMedia({ video: true });
  const video = Object.assign(document.createElement("video"), { srcObject: stream, muted: true, playsInline: true });
  [live, camera.textContent] = [stream, "End"];
  await video.play();
  while (live === stream) {
    await read(await createImageBitmap(video));
    await new Promise(requestAnimationFrame);
  }
}

camera.hidden = !navigator.mediaDevices;
camera.onclick = () => (live ? stop() : told(film));
find("input").onchange = ({ target }) => take(target.files);
document.onpaste = ({ clipboardData }) => take(clipboardData.files);
document.ondragover = (event) => (event.preventDefault(), area.classList.add("over"));
document.ondragleave = () => area.classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  area.classList.remove("over");
  take(event.dataTransfer.files);
};
